"""What answers and refusals teach about a deployment: attempts of running requests, statistics, and where these are kept."""
