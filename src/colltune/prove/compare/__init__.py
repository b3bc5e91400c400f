"""The default against what is to be judged, by paired launches."""
