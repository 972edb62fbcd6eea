"""Sessions (conversations), their turns and messages, the queue of messages for a busy agent, and traces."""
