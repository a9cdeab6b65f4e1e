"""One file a kind of wording; each pattern with a verbatim sample and its source."""
