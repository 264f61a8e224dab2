"""Where people already watch streams: privatest in the shape that other libraries expect. Each needs its extra."""
