"""castpoi: where will a person go next, from the places they have been?"""

__version__ = "0.1.0"
