"""The worker: claims work, drives pipelines, runs tools, reports outcomes."""
