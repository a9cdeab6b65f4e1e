"""From one attempt to one decision: the plan, the fit into its budget, and the last resort."""
