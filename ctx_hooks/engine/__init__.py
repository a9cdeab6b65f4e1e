"""Makes one decision about one attempt: the plan, the fit into its budget, and the last resort."""
