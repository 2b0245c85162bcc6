"""One module per experiment, each with `build(experiment, run) -> Page`."""
