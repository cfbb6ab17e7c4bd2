"""The Python library, for `import castpoi`: frames in, frames out; writes only to a given `out`."""
