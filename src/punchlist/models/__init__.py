"""LLM providers behind one small Protocol, and the rehearsal model."""
