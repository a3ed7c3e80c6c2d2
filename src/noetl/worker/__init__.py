"""The data plane's shell: claims work, drives pipelines, runs tools, reports what came of it."""
