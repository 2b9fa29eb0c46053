"""Dead letters and people: what may be sent again, running a plan, correcting a payload, showing one masked."""
