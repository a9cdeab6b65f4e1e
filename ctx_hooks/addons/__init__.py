"""Add-ons: what takes part in a request where a policy names it. The core imports none of them."""
