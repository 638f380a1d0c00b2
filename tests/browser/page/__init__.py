"""Tests that drive the site; a package, so that what they share goes when the last of them has run."""
