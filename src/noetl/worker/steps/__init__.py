"""Runs the work of one lease: the pipeline of a step-run or of a chunk of loop items."""
