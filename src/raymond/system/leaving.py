"""The end of a process that is done: to take everything down that it has loaded would be a tenth of its work."""
