// Plotly's bundle brings a style element for maps, which our policy (style-src 'self') would block with an error in the
// console. There are no maps here: while the bundle loads, style elements with text are left out.
(function () {
  "use strict";
  const head = document.head;
  const append = head.appendChild;
  head.appendChild = function (node) {
    if (node instanceof HTMLStyleElement && node.textContent) return node;
    return append.call(head, node);
  };
  window.privatestPlotlyLoaded = function () {
    delete head.appendChild;
    delete window.privatestPlotlyLoaded;
  };
})();
