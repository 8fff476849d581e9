"""One file a claim. Each prints its table and ends with lines `RESULT name value`."""
