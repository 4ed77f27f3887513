/* A libspillway.so that does nothing: a program linked to it needs a library of that name. */
int stand_in_runtime(void) { return 0; }
