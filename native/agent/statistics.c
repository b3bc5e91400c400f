/* The median and how well it is known. */
#include "agent.h"

#include <math.h>
#include <stdlib.h>

static int ct__compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

double ct_median_interval(double *values, int count, double *low, double *high)
{
    qsort(values, (size_t)count, sizeof *values, ct__compare);
    /* Order statistics around the median: the number of values below it is binomial(count, 1/2), so 1.96 standard
     * deviations of that number reach as far as the 95% interval (normal approximation, no model of the times). */
    int reach = (int)ceil(0.98 * sqrt((double)count));
    int first = (count - 1) / 2 - reach, last = count / 2 + reach;
    *low = values[first < 0 ? 0 : first];
    *high = values[last > count - 1 ? count - 1 : last];
    return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}
