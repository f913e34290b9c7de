Btj
locationwj
offset1xj
length99999999999999999999p