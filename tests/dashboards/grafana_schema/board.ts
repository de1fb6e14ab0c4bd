// What a board's JSON may hold: Grafana's own published types, put together for the kinds of panel that the boards use.
//
// `make board-schema` makes board.schema.json from this file. Not here: which panels a board has.
import type { AnnotationContainer, AnnotationQuery, Dashboard, FieldConfig, FieldConfigSource, Panel, RowPanel } from "@grafana/schema";
import type * as stat from "@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen";
import type * as stateTimeline from "@grafana/schema/dist/esm/raw/composable/statetimeline/panelcfg/x/StateTimelinePanelCfg_types.gen";
import type * as table from "@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen";
import type * as timeSeries from "@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen";

// Grafana publishes the query of a Prometheus data source in another package; these are the fields that boards use.
interface PrometheusQuery {
    datasource: { type: "prometheus"; uid: string };
    expr: string;
    format?: "time_series" | "table" | "heatmap";
    instant: boolean;
    range: boolean;
    legendFormat: string;
    refId: string;
}

interface PanelOf<Type extends string, Options, Custom> extends Omit<
    Panel,
    "type" | "options" | "fieldConfig" | "targets" | "datasource"
> {
    type: Type;
    datasource: { type: "prometheus"; uid: string };
    title: string;
    description: string;
    targets: PrometheusQuery[];
    options: Partial<Options>;
    fieldConfig: Omit<FieldConfigSource, "defaults"> & {
        defaults: Omit<FieldConfig, "custom"> & { custom?: Partial<Custom> };
    };
}

type BoardPanel =
    | PanelOf<"stat", stat.Options, {}>
    | PanelOf<"timeseries", timeSeries.Options, timeSeries.FieldConfig>
    | PanelOf<"table", table.Options, table.FieldConfig>
    | PanelOf<"state-timeline", stateTimeline.Options, stateTimeline.FieldConfig>;

// An annotation that asks Prometheus carries its query beside the fields that all annotations have.
type PrometheusAnnotation = Omit<AnnotationQuery, "target" | "snapshotData"> & {
    expr: string;
    titleFormat: string;
    textFormat: string;
    tagKeys?: string;
};

export interface Board extends Omit<Dashboard, "panels" | "annotations"> {
    panels: Array<BoardPanel | (Omit<RowPanel, "panels" | "datasource"> & { panels: BoardPanel[] })>;
    annotations: Omit<AnnotationContainer, "list"> & { list: PrometheusAnnotation[] };
}
