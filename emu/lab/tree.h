#ifndef LONGHAUL_LAB_TREE_H
#define LONGHAUL_LAB_TREE_H

/* Removes a folder with all below it; links are removed, not followed. What is not there is fine. */
void tree_remove(const char *path);

#endif
