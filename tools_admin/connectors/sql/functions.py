"""Functions that a query may call: they compute from their arguments and do nothing else.

Left out on purpose, besides all that read files, settings, sleep, lock or write: functions that make long values out of
short ones (repeat, lpad, format …), because a single value of a gigabyte hurts more than a slow query.
"""

COMMON = """
    abs avg cast ceil ceiling char_length character_length coalesce concat concat_ws count cume_dist date dense_rank
    exp first_value floor greatest group_concat iif instr json_array json_array_length json_object lag last_value lead
    least length ln log lower ltrim max min mod nth_value ntile nullif octet_length percent_rank pi power rank replace
    reverse round row_number rtrim sign sqrt string_agg substr substring sum trim trunc upper exists
"""

POSTGRESQL = """
    acos array array_agg array_append array_cat array_dims array_length array_lower array_ndims array_position
    array_positions array_prepend array_remove array_replace array_to_string array_upper ascii asin atan atan2 age any
    all bit_and bit_length bit_or bool_and bool_or btrim cardinality cbrt chr clock_timestamp corr cos cot covar_pop
    covar_samp current_date current_time current_timestamp date_bin date_part date_trunc decode degrees div encode
    erf every extract factorial gcd generate_series grouping initcap isfinite json_agg json_array_elements
    json_array_elements_text json_build_array json_build_object json_each json_each_text json_extract_path
    json_extract_path_text json_object_agg json_object_keys json_typeof jsonb_agg jsonb_array_elements
    jsonb_array_elements_text jsonb_array_length jsonb_build_array jsonb_build_object jsonb_each jsonb_each_text
    jsonb_extract_path jsonb_extract_path_text jsonb_object_agg jsonb_object_keys jsonb_path_exists jsonb_path_query
    jsonb_path_query_array jsonb_path_query_first jsonb_strip_nulls jsonb_typeof justify_days justify_hours
    justify_interval lcm left localtime localtimestamp log10 lower_inc make_date make_interval make_time
    make_timestamp make_timestamptz md5 mode now num_nonnulls num_nulls numrange int4range int8range daterange tsrange
    tstzrange isempty overlay percentile_cont percentile_disc phraseto_tsquery plainto_tsquery position radians random
    range_agg regexp_count regexp_instr regexp_like regexp_match regexp_matches regexp_replace regexp_split_to_array
    regexp_split_to_table regexp_substr regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope right row
    row_to_json scale sha224 sha256 sha384 sha512 sin split_part starts_with statement_timestamp stddev stddev_pop
    stddev_samp string_to_array string_to_table strpos tan to_char to_date to_hex to_json to_jsonb to_number
    to_timestamp to_tsquery to_tsvector transaction_timestamp translate ts_headline ts_rank ts_rank_cd unnest upper_inc
    var_pop var_samp variance websearch_to_tsquery width_bucket xmlagg interval numnode
"""

SQLITE = """
    acos asin atan atan2 changes char cos current_date current_time current_timestamp datetime degrees format_date glob
    hex ifnull json json_each json_extract json_group_array json_group_object json_patch json_quote json_tree json_type
    json_valid julianday like likelihood likely log10 log2 median radians random sin strftime time timediff tan total
    -> ->> typeof unhex unicode unixepoch unlikely
"""

OTHER = "current_date current_time current_timestamp extract date_trunc left right"


def allowed_functions(dialect: str) -> frozenset[str]:
    """Lower-case names for a dialect of `sqlglot`."""
    return frozenset((COMMON + {"postgres": POSTGRESQL, "sqlite": SQLITE}.get(dialect, OTHER)).split())
