"""Run the work of one lease: the pipeline of a step-run or of loop items."""
