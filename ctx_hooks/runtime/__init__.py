"""What a process needs whatever it works on: bounded memory of texts, deadlines, threads, warnings given once."""
