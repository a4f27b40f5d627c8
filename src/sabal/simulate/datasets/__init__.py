"""Data sets by name: public ones, arrays, folders of images, tables of texts."""
