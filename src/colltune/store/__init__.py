"""The journal: every sample on disk before the next is asked for, replayed on resume, of one environment only."""
