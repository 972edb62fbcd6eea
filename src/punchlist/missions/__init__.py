"""Missions: long-running goals with pillars, metrics and todos in limited slots; only the Lead completes a todo (M)."""
