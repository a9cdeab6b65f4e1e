"""The operator's settings, and the policy that they give each request."""
