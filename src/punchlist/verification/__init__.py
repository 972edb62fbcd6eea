"""How an item's completion is verified: checks, evidence, and the marks that people see."""
