"""The archive of removed texts, and the tool by which a model reads them; no client sees its calls."""
