"""What is kept to be asked, and the asking."""
