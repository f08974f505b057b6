/* What the link says of itself on request: one JSON object. */
#ifndef REPORT_H
#define REPORT_H

#include "link.h"

#include <stdio.h>

/* Writes the `stats` object, or `error TEXT` where something is unknown. */
void report_stats(FILE *out, struct link *link);

#endif
