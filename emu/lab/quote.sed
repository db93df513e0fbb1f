# Every line as a C string.
s/["\\]/\\&/g
s/.*/"&\\n"/
