"""Keeps removed texts by tenant: on disk or in Redis, compressed and sealed."""
