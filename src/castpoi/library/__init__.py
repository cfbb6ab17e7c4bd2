"""The Python library: what `import castpoi` offers. Frames in, frames out; nothing is written."""
