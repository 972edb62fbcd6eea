"""Recommendations: what an owner suggests and the Lead or a person decides."""
