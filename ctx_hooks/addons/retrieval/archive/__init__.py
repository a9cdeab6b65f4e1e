"""What compaction cut, kept by tenant: in memory, on disk or in Redis, compressed, and encrypted where there is a key."""
