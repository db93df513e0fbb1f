#ifndef LONGHAUL_LAB_TREE_H
#define LONGHAUL_LAB_TREE_H

/* Removes a folder with all below it; links are removed, not followed. What is not there is fine. */
void tree_remove(const char *path);
/* The whole text of a file; caller frees. NULL where it cannot be read or is empty. */
char *tree_read(const char *path);

#endif
