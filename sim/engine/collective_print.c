/* How `longhaul collective` writes its answer. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "configs/units.h"
#include "sim/engine/collective.h"
#include "sim/report/result.h"
#include "sim/report/text.h"
#include "sim/report/unmodelled.h"

char *collective_size(uint64_t bytes, char *buffer, size_t size)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t unit = 0;
    uint64_t count = bytes;
    for (; unit + 1 < sizeof names / sizeof names[0] && count % 1024 == 0; unit++)
        count /= 1024;
    if (count < 10000)
        snprintf(buffer, size, "%llu %s", (unsigned long long)count, names[unit]);
    else
        units_format((double)bytes, DIM_BYTES, 0, buffer, size);
    return buffer;
}

/* ---- the lines above the table */

static const char *plural(long count)
{
    return count == 1 ? "" : "s";
}

static void write_wan(const struct scenario *scenario, FILE *out)
{
    for (size_t i = 0; i < scenario->wan_count; i++) {
        const struct wan_link *wan = &scenario->wan[i];
        char rate[32], rtt[32];
        fprintf(out, "%s %s-%s %ld x %s, RTT %s", i ? "," : "; WAN", scenario->sites[wan->between[0]].name,
                scenario->sites[wan->between[1]].name, wan->waves,
                units_format(wan->wave_bit_per_s, DIM_RATE, 4, rate, sizeof rate),
                units_format(wan->rtt_s, DIM_TIME, 4, rtt, sizeof rtt));
    }
}

static void write_transport(const struct transport_settings *transport, FILE *out)
{
    char eager[32], window[32];
    fprintf(out, "; transport: %ld channel%s, %ld slice%s per segment, eager up to %s, %ld handshake%s, ",
            transport->channels, plural(transport->channels), transport->slices, plural(transport->slices),
            units_format(transport->eager_bytes, DIM_BYTES, 4, eager, sizeof eager), transport->handshakes,
            plural(transport->handshakes));
    if (isfinite(transport->window_bytes))
        fprintf(out, "window %s", units_format(transport->window_bytes, DIM_BYTES, 4, window, sizeof window));
    else
        fputs("no window limit", out);
    fprintf(out, ", %ld connection%s per pair", transport->connections, plural(transport->connections));
}

static void write_sites(const struct scenario *scenario, int ranks, FILE *out)
{
    char rate[32];
    const struct fabric *fabric = &scenario->fabric;
    double nic = (double)fabric->nics_per_node * fabric->nic_bit_per_s * (double)scenario->training.tensor;
    double least = INFINITY;
    fprintf(out, "%s: %zu site%s (", scenario->name, scenario->site_count, plural((long)scenario->site_count));
    for (size_t i = 0; i < scenario->site_count; i++) {
        const struct site *site = &scenario->sites[i];
        fprintf(out, "%s%s %ld nodes", i ? ", " : "", site->name, site->nodes);
        least = fmin(least, nic / (double)site->gpus_per_node);
    }
    fprintf(out, "), %d rank%s of %ld GPU%s, %s per rank", ranks, plural(ranks), scenario->training.tensor,
            plural(scenario->training.tensor), units_format(least, DIM_RATE, 4, rate, sizeof rate));
}

static void print_question(const struct collective_question *question, int ranks, FILE *out, int width)
{
    char *text = NULL, skew[32];
    size_t length;
    FILE *line = open_memstream(&text, &length);
    if (!line)
        return;
    write_sites(question->scenario, ranks, line);
    write_wan(question->scenario, line);
    write_transport(&question->scenario->transport, line);
    if (question->skew_s > 0)
        fprintf(line, "; ranks start within %s", units_format(question->skew_s, DIM_TIME, 4, skew, sizeof skew));
    if (fclose(line) == 0)
        text_wrap(out, text, width, 2);
    free(text);
}

static void print_unmodelled(const struct scenario *scenario, FILE *out, int width)
{
    char *text;
    if (unmodelled_text(scenario, &text, NULL))
        fputs("(out of memory: what is not simulated is missing here)\n", out);
    else if (text)
        text_wrap(out, text, width, 0);
    free(text);
}

/* ---- the table */

enum { COLUMNS = 8 };

static void add_row(struct grid *grid, const struct collective_row *row)
{
    char size[32], time[32], algbw[32], busbw[32], floor[32], messages[32];
    grid_row(grid, PAINT_PLAIN,
             (const char *const[COLUMNS]){
                 collective_size(row->bytes, size, sizeof size),
                 row->algorithm->name,
                 text_time(row->time_s, 4, time, sizeof time),
                 units_format(row->algbw_byte_per_s, DIM_BYTE_RATE, 4, algbw, sizeof algbw),
                 units_format(row->busbw_byte_per_s, DIM_BYTE_RATE, 4, busbw, sizeof busbw),
                 text_time(row->floor_s, 4, floor, sizeof floor),
                 text_count((double)row->messages, messages, sizeof messages),
                 fidelity_name(row->bulk ? FIDELITY_BULK : FIDELITY_MESSAGE),
             });
}

void collective_print(const struct collective_question *question, const struct collective_row *rows, FILE *out,
                      bool colour, int width)
{
    static const bool right[COLUMNS] = {true, false, true, true, true, true, true, false};
    struct grid *grid = grid_new(COLUMNS, 1, right);
    print_question(question, rows[0].ranks, out, width ? width : 100);
    fprintf(out, "\n%s\n", question->op->name);
    if (grid)
        grid_row(grid, PAINT_HEAD,
                 (const char *const[COLUMNS]){"size", "algorithm", "time", "algbw", "busbw", "floor", "messages",
                                              "fidelity"});
    for (size_t i = 0; grid && i < question->size_count * question->algorithm_count; i++)
        add_row(grid, &rows[i]);
    if (grid)
        grid_print(grid, out, &(struct grid_style){.colour = colour, .gap = 2, .indent = 2});
    grid_free(grid);
    fputc('\n', out);
    text_wrap(
        out,
        "time: until the last rank is done. algbw: size / time; busbw: algbw x what each rank sends per byte, as in "
        "nccl-tests. floor: what no schedule of this algorithm can beat.",
        width ? width : 100, 0);
    print_unmodelled(question->scenario, out, width ? width : 100);
}

/* ---- JSON */

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *wan_json(const struct scenario *scenario, const struct engine_wan *wan)
{
    json_t *array = json_array();
    for (size_t i = 0; array && i < 2 * scenario->wan_count; i++) {
        const size_t *between = scenario->wan[i / 2].between;
        json_array_append_new(
            array, json_pack("{s:s, s:s, s:o, s:o, s:o}", "from", scenario->sites[between[i % 2]].name, "to",
                             scenario->sites[between[!(i % 2)]].name, "bytes", number(wan[i].bytes), "utilisation",
                             number(wan[i].utilisation), "peak_utilisation", number(wan[i].peak_utilisation)));
    }
    return array;
}

static json_t *row_json(const struct scenario *scenario, const struct collective_row *row)
{
    return json_pack("{s:I, s:s, s:o, s:o, s:o, s:o, s:I, s:s, s:o}", "size_bytes", (json_int_t)row->bytes, "algorithm",
                     row->algorithm->name, "time_s", number(row->time_s), "algbw_byte_per_s",
                     number(row->algbw_byte_per_s), "busbw_byte_per_s", number(row->busbw_byte_per_s), "floor_s",
                     number(row->floor_s), "messages", (json_int_t)row->messages, "fidelity",
                     fidelity_name(row->bulk ? FIDELITY_BULK : FIDELITY_MESSAGE), "wan", wan_json(scenario, row->wan));
}

/* NULL when out of memory: json_pack then gives up as a whole. */
static json_t *notes_json(const struct scenario *scenario)
{
    char *text;
    int rc = unmodelled_text(scenario, &text, NULL);
    json_t *notes = rc ? NULL : text ? json_pack("[s]", text) : json_array();
    free(text);
    return notes;
}

static json_t *question_json(const struct collective_question *question, const struct collective_row *rows)
{
    const struct scenario *scenario = question->scenario;
    size_t count = question->size_count * question->algorithm_count;
    char seed[24];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)scenario->seed);
    json_t *results = json_array();
    for (size_t i = 0; results && i < count; i++)
        json_array_append_new(results, row_json(scenario, &rows[i]));
    return json_pack("{s:s, s:{s:s, s:s}, s:o, s:s, s:s, s:s, s:i, s:o, s:o, s:o}", "schema", "longhaul.collective/1",
                     "scenario", "name", scenario->name, "hash", scenario->hash, "seed",
                     scenario->seed <= INT64_MAX ? json_integer((json_int_t)scenario->seed) : json_string(seed),
                     "version", LONGHAUL_VERSION, "backend", "sim", "op", question->op->name, "ranks", rows[0].ranks,
                     "skew_s", number(question->skew_s), "results", results, "notes", notes_json(scenario));
}

int collective_dump_json(const struct collective_question *question, const struct collective_row *rows, FILE *out,
                         struct err *err)
{
    json_t *json = question_json(question, rows);
    size_t count = question->size_count * question->algorithm_count;
    if (!json || json_array_size(json_object_get(json, "results")) != count) {
        json_decref(json);
        return err_set(err, ENOMEM, "out of memory for the JSON of %zu results", count);
    }
    int rc = json_dumpf(json, out, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) || fputc('\n', out) == EOF;
    json_decref(json);
    return rc ? err_set(err, EIO, "cannot write the JSON") : 0;
}
