// Two orders of the three loops of C = A B, as a learner would write them: i,j,k runs down the columns of B in its
// inner loop, i,k,j along its rows. Rows are `pitch` numbers apart. Prints the best of three times of each, in seconds.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void ijk(int n, int pitch, const float *a, const float *b, float *c) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int k = 0; k < n; k++) sum += a[i * pitch + k] * b[k * pitch + j];
            c[i * pitch + j] = sum;
        }
}

static void ikj(int n, int pitch, const float *a, const float *b, float *c) {
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) {
            float factor = a[i * pitch + k];
            for (int j = 0; j < n; j++) c[i * pitch + j] += factor * b[k * pitch + j];
        }
}

static double best_of_three(void (*order)(int, int, const float *, const float *, float *),
                            int n, int pitch, const float *a, const float *b, float *c) {
    double best = 1e9;
    for (int run = 0; run < 3; run++) {
        double start = now();
        order(n, pitch, a, b, c);
        double taken = now() - start;
        if (taken < best) best = taken;
    }
    return best;
}

int main(int count, char **arguments) {
    if (count != 3) return fprintf(stderr, "usage: loop_orders N PITCH\n"), 2;
    int n = atoi(arguments[1]), pitch = atoi(arguments[2]);
    float *a = calloc(n * pitch, sizeof *a), *b = calloc(n * pitch, sizeof *b), *c = calloc(n * pitch, sizeof *c);
    for (int i = 0; i < n * pitch; i++) a[i] = i % 7, b[i] = i % 5;
    printf("%g ", best_of_three(ijk, n, pitch, a, b, c));
    printf("%g\n", best_of_three(ikj, n, pitch, a, b, c));
    fprintf(stderr, "%g\n", c[n]);  // so that no compiler leaves the loops out
}
