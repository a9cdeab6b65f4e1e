"""OpenAI's compaction contract for deployments that do not have it."""
