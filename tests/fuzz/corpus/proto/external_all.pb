Btj
locationwj
offset56p