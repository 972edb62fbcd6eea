"""Requests that are answered once: a repeated one gets the stored answer and changes nothing."""
