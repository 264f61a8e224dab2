window.privatestPlotlyLoaded();
