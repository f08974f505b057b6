/* What the link says of itself: one JSON object on request, and lines for the log. */
#ifndef REPORT_H
#define REPORT_H

#include "link.h"

#include <stdio.h>

/* Writes the `stats` object, or `error TEXT` where something is unknown. */
void report_stats(FILE *out, struct link *link);

/* Writes the first line of the log. */
void report_log_header(FILE *out);

/* Writes one line for each direction; what is told per interval begins anew. */
void report_log_lines(FILE *out, struct link *link);

#endif
