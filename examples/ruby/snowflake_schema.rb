# A file for config/initializers, with Rails 7.1 to 8.0: schema.rb leaves out the schema that the
# extension makes for itself.
ActiveSupport.on_load(:active_record_postgresqladapter) do
  prepend(Module.new { def schema_names = super - ['_snowflake'] })
end
