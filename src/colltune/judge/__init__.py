"""One judge: ratios of times in, how many times as fast and how sure out, and the words for it."""
