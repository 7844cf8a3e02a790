;; Accepts no configuration at all.
;; kind: health
;; refused: configure
;; says: invalid configuration
(component
  {{before}}
  (core module $code
    {{core}}
    (data (i32.const 256) "\01\00\00\00\01\00\00\00")
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
