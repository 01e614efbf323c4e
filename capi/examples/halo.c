/* Heat in a plate that is spread over the ranks, a block at each. After each step neighbours put
 * their outermost cells into each other's halo, and a notification says that they have landed. An
 * allreduce has the residual of all ranks. Each rank compares its block with that of a plate that
 * it computes alone.
 *
 * A halo has two slots for each side, for even and for odd steps. A neighbour overwrites a slot two
 * steps later. Before that it has received our cells of the step between, which we put after we had
 * read the slot. So no message has to say that a slot is free.
 *
 *   cc -o halo capi/examples/halo.c $(pkg-config --cflags --libs ayre) -lm
 *   ayre run -n 4 -- ./halo
 */
#include <ayre.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 48, STEPS = 200, EVERY = 20, UP = 0, DOWN = 1, LEFT = 2, RIGHT = 3, SIDES = 4 };

static void check(int64_t code, const char *call) {
    if (code < 0) {
        fprintf(stderr, "%s: %s\n", call, ayre_detail());
        exit(1);
    }
}

/* Cells with a margin of one cell on each side. */
struct plate {
    size_t rows;
    size_t columns;
    double *now;
    double *next;
};

static struct plate new_plate(size_t rows, size_t columns) {
    size_t cells = (rows + 2) * (columns + 2);
    struct plate plate = {rows, columns, (double *)calloc(cells, sizeof(double)),
                          (double *)calloc(cells, sizeof(double))};
    if (plate.now == NULL || plate.next == NULL) {
        fprintf(stderr, "no memory for the plate\n");
        exit(1);
    }
    return plate;
}

static size_t at(const struct plate *plate, size_t row, size_t column) {
    return row * (plate->columns + 2) + column;
}

/* Fills a plate that begins at this row and column of the whole one. */
static void fill(struct plate *plate, size_t row0, size_t column0) {
    for (size_t row = 1; row <= plate->rows; row++) {
        for (size_t column = 1; column <= plate->columns; column++) {
            size_t mixed = (row0 + row) * 31 + (column0 + column) * 17;
            plate->now[at(plate, row, column)] = (double)(mixed % 97);
        }
    }
}

/* Advances all cells by a step. Returns the sum of squared changes. */
static double advance(struct plate *plate) {
    double residual = 0;
    size_t width = plate->columns + 2;
    for (size_t row = 1; row <= plate->rows; row++) {
        for (size_t column = 1; column <= plate->columns; column++) {
            size_t cell = at(plate, row, column);
            const double *now = &plate->now[cell];
            double around = now[-1] + now[1] + *(now - width) + now[width];
            plate->next[cell] = *now + 0.2 * (around - 4 * *now);
            residual += (plate->next[cell] - *now) * (plate->next[cell] - *now);
        }
    }
    double *before = plate->now;
    plate->now = plate->next;
    plate->next = before;
    return residual;
}

/* The cells of a side, or the margin beyond it, one behind the other or a row apart. */
struct line {
    size_t first;
    size_t stride;
    size_t count;
};

static struct line line(const struct plate *plate, int side, bool is_margin) {
    size_t width = plate->columns + 2;
    size_t row = side == UP ? !is_margin : plate->rows + is_margin;
    size_t column = side == LEFT ? !is_margin : plate->columns + is_margin;
    struct line level = {at(plate, row, 1), 1, plate->columns};
    struct line upright = {at(plate, 1, column), width, plate->rows};
    return side == UP || side == DOWN ? level : upright;
}

/* This rank's port, its halo and those of its neighbours: NULL beyond the edges of the plate. */
struct exchange {
    ayre_port *port;
    ayre_region *halo;
    ayre_remote_region *remotes[SIDES];
    int neighbours;
    int arrived[2];
};

/* The place of a side's cells in a halo. */
static size_t slot(int side, int step) {
    return (size_t)(2 * side + step % 2) * CELLS * sizeof(double);
}

static void share_halo(struct exchange *exchange, const int *ranks) {
    size_t bytes = slot(SIDES, 0);
    ayre_range all = {0, bytes};
    check(ayre_alloc(exchange->port, bytes, 0, &exchange->halo), "ayre_alloc");
    for (int side = 0; side < SIDES; side++) {
        if (ranks[side] >= 0) {
            check(ayre_share(exchange->port, (ayre_peer)ranks[side], exchange->halo, all,
                             AYRE_ALL_RIGHTS, 0, NULL),
                  "ayre_share");
        }
    }
    for (int side = 0; side < SIDES; side++) {
        if (ranks[side] >= 0) {
            check(ayre_accept_region(exchange->port, (ayre_peer)ranks[side], 0,
                                     &exchange->remotes[side]),
                  "ayre_accept_region");
            exchange->neighbours++;
        }
    }
}

static void put_outermost(struct exchange *exchange, const struct plate *plate, int step) {
    ayre_options options = {AYRE_COMPLETER, (uint32_t)step, 0};
    for (int side = 0; side < SIDES; side++) {
        double cells[CELLS];
        struct line from = line(plate, side, false);
        for (size_t cell = 0; cell < from.count; cell++) {
            cells[cell] = plate->now[from.first + cell * from.stride];
        }
        int64_t code = exchange->remotes[side] == NULL ? 0 : AYRE_BUSY_LAST;
        while (code < 0 && code >= AYRE_BUSY_LAST) {
            /* Our upper side is the lower side of the rank above. */
            code = ayre_put(exchange->port, exchange->remotes[side], slot(side ^ 1, step), cells,
                            from.count * sizeof(double), &options);
            ayre_progress(exchange->port);
        }
        check(code, "ayre_put");
    }
}

/* Waits until the cells of all neighbours have landed, and copies them into the margin. A neighbour
 * may be one step ahead, so notifications are counted by the parity of their step. */
static void take_halo(struct exchange *exchange, struct plate *plate, int step) {
    while (exchange->arrived[step % 2] < exchange->neighbours) {
        ayre_notification note;
        check(ayre_wait_notification(exchange->port, &note, -1), "ayre_wait_notification");
        exchange->arrived[note.tag % 2]++;
    }
    exchange->arrived[step % 2] = 0;
    const char *halo = (const char *)ayre_region_address(exchange->halo);
    for (int side = 0; side < SIDES; side++) {
        if (exchange->remotes[side] == NULL) {
            continue;
        }
        double cells[CELLS];
        struct line into = line(plate, side, true);
        memcpy(cells, halo + slot(side, step), into.count * sizeof(double));
        for (size_t cell = 0; cell < into.count; cell++) {
            plate->now[into.first + cell * into.stride] = cells[cell];
        }
    }
}

/* Computes the whole plate alone. Returns whether this block and the residuals are equal to it. */
static bool is_as_alone(const struct plate *block, size_t row0, size_t column0, size_t rows,
                        size_t columns, const double *residuals) {
    struct plate whole = new_plate(rows, columns);
    bool is_equal = true;
    fill(&whole, 0, 0);
    for (int step = 0; step < STEPS; step++) {
        double residual = advance(&whole);
        /* Sums in another order differ by less. */
        is_equal = is_equal && (step % EVERY != 0 ||
                                fabs(residuals[step / EVERY] - residual) <= 1e-9 * residual);
    }
    for (size_t row = 1; row <= block->rows; row++) {
        const double *ours = &block->now[at(block, row, 1)];
        const double *alone = &whole.now[at(&whole, row0 + row, column0 + 1)];
        is_equal = is_equal && memcmp(ours, alone, block->columns * sizeof(double)) == 0;
    }
    free(whole.now);
    free(whole.next);
    return is_equal;
}

int main(void) {
    struct exchange exchange;
    memset(&exchange, 0, sizeof exchange);
    check(ayre_port_join(NULL, &exchange.port), "ayre_port_join");
    int rank = ayre_port_rank(exchange.port);
    int size = ayre_port_size(exchange.port);
    /* As square as it can be. */
    int high = (int)sqrt((double)size);
    while (size % high != 0) {
        high--;
    }
    int wide = size / high;
    int row = rank / wide;
    int column = rank % wide;
    int ranks[SIDES] = {row > 0 ? rank - wide : -1, row + 1 < high ? rank + wide : -1,
                        column > 0 ? rank - 1 : -1, column + 1 < wide ? rank + 1 : -1};
    share_halo(&exchange, ranks);
    ayre_group *all;
    check(ayre_messenger_start(exchange.port, NULL), "ayre_messenger_start");
    check(ayre_group_of_all(exchange.port, "all", &all), "ayre_group_of_all");

    struct plate block = new_plate(CELLS, CELLS);
    size_t row0 = (size_t)row * CELLS;
    size_t column0 = (size_t)column * CELLS;
    double residuals[STEPS / EVERY];
    fill(&block, row0, column0);
    for (int step = 0; step < STEPS; step++) {
        put_outermost(&exchange, &block, step);
        take_halo(&exchange, &block, step);
        double residual = advance(&block);
        if (step % EVERY == 0) {
            check(ayre_allreduce(exchange.port, all, &residual, 1, AYRE_F64, AYRE_COMBINE_SUM),
                  "ayre_allreduce");
            residuals[step / EVERY] = residual;
        }
    }
    if (!is_as_alone(&block, row0, column0, (size_t)high * CELLS, (size_t)wide * CELLS,
                     residuals)) {
        fprintf(stderr, "rank %d has computed something else\n", rank);
        return 1;
    }
    if (rank == 0) {
        printf("%d by %d ranks, %d steps, residual %g to %g: as computed alone\n", high, wide,
               STEPS, residuals[0], residuals[STEPS / EVERY - 1]);
    }
    for (int side = 0; side < SIDES; side++) {
        ayre_remote_region_close(exchange.remotes[side]);
    }
    free(block.now);
    free(block.next);
    ayre_group_close(all);
    ayre_region_close(exchange.halo);
    check(ayre_port_leave(exchange.port), "ayre_port_leave");
    return 0;
}
