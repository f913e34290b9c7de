Btj
locationwj
offset8j
length8p