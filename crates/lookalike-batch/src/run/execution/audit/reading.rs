//! The part of the audit in reading: it samples documents and compares each later one with them.

use lookalike::quality::audit::SampleComparer;
use lookalike::text::{TextAnalysis, TextAnalyzer};
use lookalike_io::error::Result;
use lookalike_io::source::InputRow;

use crate::run::execution::audit::RunAudit;
use crate::run::reading::documents::ReadDocuments;
use crate::run::reading::reading_sink::{
    BlockSource, InputRole, ReadBuffers, ReadingBackend, ReadingSink, RowSketching, SinkWorker,
};

/// Keeps documents in memory and compares them with the sample of an audit.
pub(in crate::run) struct AuditBackend<'a> {
    pub(in crate::run) audit: &'a RunAudit,
    /// Size on disk of all inputs in bytes, if it is known.
    pub(in crate::run) input_bytes: Option<u64>,
}

impl ReadingBackend for AuditBackend<'_> {
    fn open_sink(&self, role: InputRole, _rows_before: u64) -> Box<dyn ReadingSink + '_> {
        if role == InputRole::New {
            self.audit.audit_drawing().begin_inputs();
        }
        Box::new(AuditSink { backend: self })
    }
}

struct AuditSink<'a> {
    backend: &'a AuditBackend<'a>,
}

impl ReadingSink for AuditSink<'_> {
    fn new_worker(&self) -> Box<dyn SinkWorker + '_> {
        Box::new(AuditWorker {
            backend: self.backend,
            comparer: self.backend.audit.new_comparer(),
            row_base: 0,
        })
    }
}

struct AuditWorker<'a> {
    backend: &'a AuditBackend<'a>,
    comparer: SampleComparer,
    /// Offset of the numbers of rows of the block.
    row_base: u64,
}

impl SinkWorker for AuditWorker<'_> {
    fn begin_block(
        &mut self,
        source: BlockSource<'_>,
        analyzer: &TextAnalyzer,
        buffers: &mut ReadBuffers,
    ) -> Result<()> {
        let drawing = self.backend.audit.audit_drawing();
        drawing.draw_from_block(source, self.backend.input_bytes, analyzer, buffers)?;
        self.row_base = drawing.row_number_base();
        Ok(())
    }

    fn add_document(
        &mut self,
        sketching: &RowSketching,
        row: &InputRow<'_>,
        analysis: &TextAnalysis<'_>,
        documents: &mut ReadDocuments,
    ) -> Result<()> {
        let comparer = &mut self.comparer;
        comparer.begin_document(analysis);
        let see = &mut |features: &[u64]| comparer.add_features(features);
        let sketches = &mut documents.sketches;
        sketching
            .sketcher
            .add_showing_features(analysis, sketches, see);
        let number = self.row_base + row.number;
        self.backend
            .audit
            .compare_with_drawn(number, analysis, comparer);
        Ok(())
    }
}
