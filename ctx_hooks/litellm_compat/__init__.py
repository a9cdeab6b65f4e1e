"""The only room of the core that uses LiteLLM's private names or depends on its version.

If a LiteLLM version lacks a name, these functions return None, an empty list or LiteLLM's own behaviour. They do not raise.
"""
